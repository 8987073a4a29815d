"""Code that the stream decoders and encoders of dialects share."""
