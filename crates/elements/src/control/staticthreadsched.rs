//! `StaticThreadSched`: which thread runs which task.

use element::arguments::Raw;
use element::prelude::*;
use element::text;

/// Says which thread is to run an element's task: each argument is `ELEMENT THREAD`.
///
/// `COMPOUND THREAD` is for all elements within a compound element.
/// ```click
/// StaticThreadSched(source 0);
/// source :: InfiniteSource(LIMIT 2, STOP true) -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.count = 2
/// source.home_thread = 0
/// ```
/// ## Differences
/// A configuration runs on one thread: all tasks are on thread 0, whatever the number.
#[derive(Args)]
#[element(name = "StaticThreadSched", group = "control", ports = "0/0", see = "BalancedThreadSched")]
pub struct StaticThreadSchedArgs {
    /// Elements, each with its thread.
    #[arg(rest)]
    threads: Vec<Raw>,
}

/// The element.
pub struct StaticThreadSched {
    names: Vec<String>,
}

impl Element for StaticThreadSched {
    type Args = StaticThreadSchedArgs;

    fn new(args: StaticThreadSchedArgs, setup: &mut Setup) -> Result<StaticThreadSched, SetupError> {
        let mut names = Vec::new();
        for Raw(argument) in &args.threads {
            let words = text::words(argument);
            let [name, thread] = words.as_slice() else {
                return Err(SetupError::new("expected ‘ELEMENT THREAD’"));
            };
            let thread =
                i32::from_argument(thread, setup).map_err(|error| SetupError::argument("THREAD", error))?;
            if setup.checking && thread > 0 {
                setup.warn(format_args!("‘{name}’ runs on thread 0 all the same: there is one thread"));
            }
            names.push(name.clone());
        }
        Ok(StaticThreadSched { names })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        let own = cx.name();
        let scope = own.rsplit_once('/').map_or(String::new(), |(scope, _)| format!("{scope}/"));
        let runtime = cx.runtime();
        for name in &self.names {
            let inside = format!("{scope}{name}/");
            let within = |element| runtime.element_name(element).starts_with(&inside);
            if runtime.find(cx.element(), name).is_none() && !(0..runtime.element_count()).any(within) {
                return Err(SetupError::new(format_args!("‘{name}’ does not name an element")));
            }
        }
        Ok(())
    }
}
