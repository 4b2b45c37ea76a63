"""Pictures of what was measured: plain text that loads nothing and escapes everything."""
