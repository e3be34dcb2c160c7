//! A module that was read, checked and translated.

use alloc::format;
use alloc::string::{String, ToString};

use wasmi::{CompilationMode, Config, EnforcedLimits, Engine, ExternType, FuncType, Linker, Module, ValType};

use crate::host::{self, Host};

/// Bytes of a module. Stops a file from keeping a box busy with its translation.
pub(crate) const MAX_BYTES: usize = 1 << 20;

/// Calls within calls.
const MAX_DEPTH: usize = 256;

/// Bytes of the interpreter's stack.
const MAX_STACK: usize = 256 << 10;

/// Imports and exports of a module.
const MAX_NAMES: usize = 1_000;

/// A module that can be instantiated.
pub(crate) struct Loaded {
    pub(crate) engine: Engine,
    pub(crate) module: Module,
    pub(crate) linker: Linker<Host>,
    /// The number of its bytes, and their hash.
    pub(crate) identity: (usize, u64),
}

impl Loaded {
    /// Reads a module, and checks that it has the interface of a function. An error is a text for the user.
    pub(crate) fn new(bytes: &[u8]) -> Result<Loaded, String> {
        if bytes.len() > MAX_BYTES {
            return Err(format!("the module has more than {MAX_BYTES} bytes"));
        }
        if !bytes.starts_with(b"\0asm") {
            return Err("this is no module of WebAssembly: it does not begin with `\\0asm`".into());
        }
        let mut config = Config::default();
        config
            .consume_fuel(true)
            .compilation_mode(CompilationMode::Eager)
            .ignore_custom_sections(true)
            .enforced_limits(EnforcedLimits::strict())
            .set_min_stack_height(1 << 10)
            .set_max_stack_height(MAX_STACK)
            .set_max_recursion_depth(MAX_DEPTH);
        config.wasm_multi_memory(false);
        let engine = Engine::new(&config);
        let module =
            Module::new(&engine, bytes).map_err(|error| format!("the module is invalid: {error}"))?;
        let mut linker = Linker::new(&engine);
        host::define(&mut linker).map_err(|error| error.to_string())?;
        check(&module)?;
        let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
        });
        Ok(Loaded { engine, module, linker, identity: (bytes.len(), hash) })
    }
}

/// The functions that a module exports: names, parameters, results, and whether it must.
const EXPORTS: &[(&str, &[ValType], &[ValType], bool)] = &[
    ("buffer", &[ValType::I32], &[ValType::I32], true),
    ("process", &[ValType::I32], &[ValType::I32], true),
    ("start", &[], &[], false),
    ("message", &[ValType::I32], &[ValType::I32], false),
];

/// Checks imports and exports.
fn check(module: &Module) -> Result<(), String> {
    if module.imports().len().max(module.exports().count()) > MAX_NAMES {
        return Err(format!("the module has more than {MAX_NAMES} imports or exports"));
    }
    if let Some(import) = module.imports().find(|import| import.module() != host::MODULE) {
        let (from, name) = (import.module(), import.name());
        return Err(format!(
            "the module imports {name:?} from {from:?}, and only functions of {:?} exist here",
            host::MODULE
        ));
    }
    if !matches!(module.get_export("memory"), Some(ExternType::Memory(_))) {
        return Err("the module does not export its memory as `memory`".into());
    }
    for (name, parameters, results, is_required) in EXPORTS {
        let expected = FuncType::new(parameters.iter().copied(), results.iter().copied());
        match module.get_export(name) {
            Some(ExternType::Func(found)) if found == expected => {}
            None if !is_required => {}
            None => return Err(format!("the module does not export the function `{name}`")),
            Some(_) => {
                let numbers = |types: &[ValType]| alloc::vec!["i32"; types.len()].join(", ");
                let (parameters, results) = (numbers(parameters), numbers(results));
                return Err(format!(
                    "the module's export `{name}` is not a function ({parameters}) -> ({results})"
                ));
            }
        }
    }
    Ok(())
}
