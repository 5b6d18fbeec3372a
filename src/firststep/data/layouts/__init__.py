"""Readers that several datasets share: folders of classes, csv lists, pickles, npz files."""
