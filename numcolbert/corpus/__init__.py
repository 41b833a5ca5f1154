"""From sentences to concept–unit pairs, triplets and benchmarks."""
