"""What a run leaves behind: lines, videos, snapshots, checkpoints, and how they are written."""
