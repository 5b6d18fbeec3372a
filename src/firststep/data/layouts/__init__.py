"""What several datasets share to read their layouts: folders of classes, csv lists, pickles, npz files."""
