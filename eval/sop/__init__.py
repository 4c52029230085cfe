"""SOP prediction (PCA, Task 1): planners of procedures, and how near they come."""
