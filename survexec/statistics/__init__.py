"""What the table says, and how sure we are."""
