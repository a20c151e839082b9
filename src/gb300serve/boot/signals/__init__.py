"""What the logs of all engines share."""
