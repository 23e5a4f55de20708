"""What the projections share: fitting one task or several, and projecting new samples."""
