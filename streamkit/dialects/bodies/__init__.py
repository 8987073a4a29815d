"""What readers and writers of requests and whole responses share."""
