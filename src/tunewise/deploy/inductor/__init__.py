"""Steering torch.compile: which kernel Inductor takes for a matrix product, from memory, a table or a model."""
