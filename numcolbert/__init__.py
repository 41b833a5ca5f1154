"""NumColBERT: a late-interaction retriever that obeys numbers."""
