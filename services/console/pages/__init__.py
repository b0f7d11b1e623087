"""The pages: what the API reads, as a person sees it. Whatever a page does is an API call."""
