"""Files: models, and readers of the field's data formats."""
