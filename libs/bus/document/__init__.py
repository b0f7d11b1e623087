"""The bus on paper: the AsyncAPI document, the JSON Schemas, and which changes break them."""
