"""Procedures (PCA): how well they are predicted (Task 1), and how well planners talk (Task 2)."""
