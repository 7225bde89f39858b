"""The idea in minutes: one stream of pictures, a ball that appears, two ways to replay it."""
