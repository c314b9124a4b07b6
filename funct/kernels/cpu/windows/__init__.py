"""Windows and boxes of images: their maxima, sums and means, and the way back."""
