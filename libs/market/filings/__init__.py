"""Reports of companies to a regulator: figures by filing, and the filings as dated events."""
