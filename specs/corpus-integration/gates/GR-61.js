// One CSS pixel is one pixel.
devicePixelRatio === 1
