"""Models and weights of others: what other formats hold, brought in and sent out."""
