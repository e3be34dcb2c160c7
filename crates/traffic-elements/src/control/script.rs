//! `Script`: calls handlers in order, with variables, jumps and waits.

use element::NameKind;
use element::arguments::Raw;
use element::prelude::*;

use super::instructions;
use super::machine::{Machine, ScriptType};
use super::scripted::{Compiled, ScriptArguments, Scripted};
use super::signals;

/// Runs a script: reads and writes handlers, computes, waits, loops, and stops the driver.
///
/// Each argument is an instruction:
///
/// - Handlers: `read H`, `write H VALUE`, `print [>FILE] TEXT|H`, `printn`, `save`, `append`.
/// - Variables: `set X TEXT`, `init X TEXT`, `export X TEXT`.
/// - Waiting: `pause [N]`, `wait TIME`.
/// - Control: `label L`, `goto L [CONDITION]`, `loop`, `end`, `exit`, `stop`, `return VALUE`, `error TEXT`.
///
/// Instructions with a `q` appended remove one level of quotes from the value. `$X` expands to the value of a variable,
/// and `$(H PARAMETER)` to that of a handler. The script's own functions (`add`, `eq`, `if`, `sprintf` and others) need
/// no path.
///
/// TYPE decides when the script runs:
///
/// - ACTIVE: at the start;
/// - PASSIVE: when its `run` handler is called;
/// - PACKET: for every packet; the returned value selects the output;
/// - PROXY: for each handler that the element itself lacks;
/// - DRIVER: when the driver is about to stop;
/// - SIGNAL, with the names of signals: when one arrives.
/// ```click
/// s :: Script(export x 0, label again, set x $(add $x 1), goto again $(lt $x 5), stop);
/// Idle -> Discard;
/// ```
/// ```expect
/// s.x = 5
/// ```
/// ## Differences
/// A script cannot write `step`, `goto` or `run` of a script that is currently calling it.
#[derive(Args)]
#[element(
    name = "Script",
    group = "control",
    ports = "-/-",
    processing = "ah/ah",
    see = "DriverManager",
    drops = "script"
)]
pub struct ScriptArgs {
    /// ACTIVE, PASSIVE, PACKET, PROXY, DRIVER, or SIGNAL with the signals.
    r#type: Option<Raw>,
    /// Instructions, one per argument.
    #[arg(rest)]
    instructions: Vec<Raw>,
}

pub type Script = Scripted<ScriptArgs>;

impl ScriptArguments for ScriptArgs {
    fn machine(self, setup: &mut Setup) -> Result<Compiled, SetupError> {
        let has_ports = setup.inputs() + setup.outputs() > 0;
        let default = if has_ports { ScriptType::Packet } else { ScriptType::Active };
        compile(self.r#type, &self.instructions, default, setup)
    }
}

/// Compiles a script from its type and instructions.
pub(super) fn compile(
    script_type: Option<Raw>,
    texts: &[Raw],
    default: ScriptType,
    setup: &Setup,
) -> Result<Compiled, SetupError> {
    let script_type = match script_type.filter(|text| !text.0.is_empty()) {
        Some(text) => parse_type(&text.0, setup)?,
        None => default,
    };
    if script_type == ScriptType::Driver {
        if setup.names().find(NameKind::Driver, "", "").is_some() {
            return Err(SetupError::new("router has more than one driver script"));
        }
        setup.names().define(NameKind::Driver, "", "", &[]);
    }
    if script_type == ScriptType::Packet && setup.inputs() == 0 {
        return Err(SetupError::new("PACKET script must have inputs"));
    }
    if script_type != ScriptType::Packet && setup.inputs() + setup.outputs() > 0 {
        return Err(SetupError::new("ports allowed only on PACKET scripts"));
    }
    let texts: Vec<String> = texts.iter().map(|text| text.0.clone()).collect();
    let instructions = instructions::parse(&texts, script_type == ScriptType::Driver, setup)?;
    Ok(Compiled(Machine::new(script_type, instructions)))
}

fn parse_type(text: &str, setup: &Setup) -> Result<ScriptType, SetupError> {
    let words = element::text::words(text);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Ok(match words.as_slice() {
        ["ACTIVE"] => ScriptType::Active,
        ["PASSIVE"] => ScriptType::Passive,
        ["PACKET" | "PUSH"] => ScriptType::Packet,
        ["PROXY"] => ScriptType::Proxy,
        ["DRIVER"] => ScriptType::Driver,
        ["SIGNAL", names @ ..] => {
            let numbers: Option<Vec<i32>> = names.iter().map(|name| signals::number(name, setup)).collect();
            let numbers = numbers.filter(|numbers| !numbers.is_empty());
            ScriptType::Signal(numbers.ok_or_else(|| SetupError::new("bad signal number"))?)
        }
        _ => return Err(SetupError::new("bad TYPE")),
    })
}
