"""What a graphics card does beside computing in order: copies ahead, and recorded updates."""
