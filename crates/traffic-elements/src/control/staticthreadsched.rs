//! `StaticThreadSched`: assigns tasks to threads.

use element::Message;
use element::arguments::Raw;
use element::prelude::*;
use element::text;

/// Assigns tasks to threads. Each argument is `ELEMENT THREAD`.
///
/// `COMPOUND THREAD` applies to all elements of a compound element. If several arguments name an element, the last one
/// applies. The handler `home_thread` of an element with a task returns its thread. The option `-j` of `click` sets
/// the number of threads.
///
/// ```click
/// StaticThreadSched(source 0);
/// source :: InfiniteSource(LIMIT 2, STOP true) -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.count = 2
/// source.home_thread = 0
/// ```
/// ## Differences
/// One thread runs the tasks of all threads. THREAD -1, which means never in Click, is thread 0.
#[derive(Args)]
#[element(name = "StaticThreadSched", group = "control", ports = "0/0", see = "BalancedThreadSched")]
pub struct StaticThreadSchedArgs {
    /// Elements, each followed by its thread.
    #[arg(rest)]
    threads: Vec<Raw>,
}

pub struct StaticThreadSched {
    threads: Vec<(String, usize)>,
}

impl Element for StaticThreadSched {
    type Args = StaticThreadSchedArgs;

    fn new(args: StaticThreadSchedArgs, setup: &mut Setup) -> Result<StaticThreadSched, SetupError> {
        let mut threads = Vec::new();
        for Raw(argument) in &args.threads {
            let words = text::words(argument);
            let missing = |keyword| Message::Missing { keyword };
            let (name, thread) = match words.as_slice() {
                [name, thread] => (name, thread),
                [] => return Err(SetupError { messages: vec![missing("ELEMENT"), missing("THREAD")] }),
                [_] => return Err(SetupError { messages: vec![missing("THREAD")] }),
                _ => return Err(SetupError { messages: vec![Message::TooMany(None)] }),
            };
            let thread =
                i32::from_argument(thread, setup).map_err(|error| SetupError::argument("THREAD", error))?;
            let known = usize::try_from(thread).ok().filter(|thread| *thread < setup.threads);
            if setup.checking && thread > 0 {
                setup.warn(format_args!(
                    "thread {thread} of ‘{name}’ will not run beside the others: one runs all"
                ));
            }
            if !setup.checking && known.is_none() && thread != -1 {
                setup.warn(format_args!("thread preference {thread} out of range"));
            }
            threads.push((name.clone(), known.unwrap_or(0)));
        }
        Ok(StaticThreadSched { threads })
    }

    /// A missing element is reported but is not an error.
    fn resolve(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        let own = cx.name();
        let scope = own.rsplit_once('/').map_or(String::new(), |(scope, _)| format!("{scope}/"));
        let runtime = cx.runtime();
        for (name, thread) in &self.threads {
            let inside = format!("{scope}{name}/");
            let within = |element: &usize| runtime.element_name(*element).starts_with(&inside);
            let meant: Vec<usize> = match runtime.find(cx.element(), name) {
                Some(element) => vec![element],
                None => (0..runtime.element_count()).filter(within).collect(),
            };
            if meant.is_empty() {
                cx.note(&format!("‘{inside}’ does not name an element"));
            }
            let meant = meant.into_iter().filter_map(|element| runtime.element(element));
            meant.for_each(|element| element.thread.set(*thread));
        }
        Ok(())
    }
}
