"""What decoders and encoders of streams share."""
