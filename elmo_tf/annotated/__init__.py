"""Text with labels, in the formats of the field."""
