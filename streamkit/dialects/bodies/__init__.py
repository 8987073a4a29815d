"""Code that the dialects' readers and writers of requests and whole responses share."""
