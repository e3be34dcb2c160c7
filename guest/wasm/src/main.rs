//! The box image with WebAssembly: the classes of the built-in one, and `Wasm`. It is built only on request, and is an image like
//! that of a user: `(cd guest && cargo build --release -p wasm)` builds it.
#![no_std]
#![no_main]

use element::Class;

const LIBRARY: usize = elements::REGISTRY.len();

static REGISTRY: [&[Class]; LIBRARY + 1] = {
    let mut all: [&[Class]; LIBRARY + 1] = [&wasm_elements::CLASSES; LIBRARY + 1];
    let mut group = 0;
    while group < LIBRARY {
        all[group] = elements::REGISTRY[group];
        group += 1;
    }
    all
};

runtime::image!(&REGISTRY);
