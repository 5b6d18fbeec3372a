"""The forms in which people have the datasets on disk: one file a dataset."""
