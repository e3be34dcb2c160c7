//! `ClickyInfo`: style hints for Click's graphical program.

use element::arguments::Raw;
use element::prelude::*;

/// Holds style hints for Clicky, Click's graphical program. It has no effect.
/// ```click
/// ClickyInfo(STYLE * { border-width: 1px });
/// InfiniteSource(LIMIT 1, STOP true) -> d :: Discard;
/// ```
/// ```expect
/// d.count = 1
/// ```
#[derive(Args)]
#[element(
    name = "ClickyInfo",
    group = "information",
    ports = "0/0",
    see = "AlignmentInfo",
    shards = "independent"
)]
pub struct ClickyInfoArgs {
    /// Style hints, which are ignored.
    #[arg(rest)]
    styles: Vec<Raw>,
}

pub struct ClickyInfo;

impl Element for ClickyInfo {
    type Args = ClickyInfoArgs;

    fn new(args: ClickyInfoArgs, _: &mut Setup) -> Result<ClickyInfo, SetupError> {
        drop(args.styles);
        Ok(ClickyInfo)
    }
}
