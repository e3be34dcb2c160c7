//! Any text as a configuration: it compiles and is checked, or is refused with reasons; laying it out and flattening it
//! end as well.
#![no_main]

use std::rc::Rc;

use libfuzzer_sys::fuzz_target;
use router::Registry;

fuzz_target!(|text: &str| {
    let is_class = |name: &str| elements::class(name).is_some();
    let compiled = click_lang::compile(text, &click_lang::Options::new("fuzz", &is_class));
    // Whether it could be laid out does not matter.
    let _ = click_lang::format(text, "fuzz");
    if !compiled.has_errors() {
        click_lang::flatten(&compiled.graph);
        router::check(compiled, Registry::new(elements::REGISTRY), Rc::new(fuzz::Nowhere));
    }
});
