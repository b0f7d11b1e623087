"""What companies reported to a regulator: figures by filing, and the filings as dated events."""
