// One CSS pixel is one pixel.
devicePixelRatio === 1 && matchMedia('(resolution: 1dppx)').matches
