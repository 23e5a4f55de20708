"""What a study is and what it found: definition, checks, cost, stored studies, results."""
