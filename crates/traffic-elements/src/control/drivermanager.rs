//! `DriverManager`: decides when the driver stops.

use element::arguments::Raw;
use element::prelude::*;

use super::machine::ScriptType;
use super::script::compile;
use super::scripted::{Compiled, ScriptArguments, Scripted};

/// A `Script` that advances by one step each time the driver would stop. When the script ends, the driver stops.
/// ```click
/// InfiniteSource(LIMIT 3, STOP true) -> c :: Counter -> Discard;
/// DriverManager(pause, write c.reset, wait 0.1s, stop);
/// ```
/// ```expect
/// c.count = 0
/// ```
#[derive(Args)]
#[element(name = "DriverManager", group = "control", ports = "0/0", see = "Script")]
pub struct DriverManagerArgs {
    /// As for `Script`; the default is DRIVER.
    r#type: Option<Raw>,
    /// Instructions, one per argument.
    #[arg(rest)]
    instructions: Vec<Raw>,
}

pub type DriverManager = Scripted<DriverManagerArgs>;

impl ScriptArguments for DriverManagerArgs {
    fn machine(self, setup: &mut Setup) -> Result<Compiled, SetupError> {
        compile(self.r#type, &self.instructions, ScriptType::Driver, setup)
    }
}
