//! `SchedOrderTest`: records the order in which tasks run.

use core::any::Any;
use core::cell::RefCell;

use element::prelude::*;

/// Default number of entries to keep.
const DEFAULT_LIMIT: usize = 1024;

/// Records the order in which tasks run. For tests.
///
/// Each run of the task appends ID to a list that all elements of the class share. The list holds as many numbers as
/// the highest SIZE among them, 1024 by default; later runs are not recorded.
/// ```click
/// one :: SchedOrderTest(1, SIZE 8, STOP true);  two :: SchedOrderTest(2);
/// ScheduleInfo(one 1, two 3);
/// ```
/// ```expect
/// one.order = 1 2 2 2 1 2 2 2
/// ```
#[derive(Args)]
#[element(name = "SchedOrderTest", group = "testing", ports = "0/0", task, see = "ScheduleInfo, TimerTest")]
pub struct SchedOrderTestArgs {
    /// Number to record.
    #[arg(position)]
    id: i32,
    /// Numbers to keep.
    #[arg(default = "0")]
    size: u32,
    /// Stop the driver when the list is full.
    #[arg(default = "false")]
    stop: bool,
    /// Number of task runs; 0 for no limit.
    #[arg(default = "0")]
    limit: u32,
}

/// The numbers recorded so far by all elements of the router.
struct Order {
    noted: Vec<i32>,
    size: usize,
}

pub struct SchedOrderTest {
    args: SchedOrderTestArgs,
    count: u32,
    order: Rc<RefCell<Order>>,
}

impl Element for SchedOrderTest {
    type Args = SchedOrderTestArgs;
    const HANDLERS: &'static [Handler<Self>] = &[Handler::read("order", "Recorded numbers.", |test| {
        let order = test.order.borrow();
        let mut text = order.noted.iter().map(i32::to_string).collect::<Vec<_>>().join(" ");
        text.push('\n');
        text
    })];

    fn new(args: SchedOrderTestArgs, _: &mut Setup) -> Result<SchedOrderTest, SetupError> {
        let order = Order { noted: Vec::new(), size: args.size as usize };
        Ok(SchedOrderTest { args, count: 0, order: Rc::new(RefCell::new(order)) })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        let runtime = cx.runtime();
        let others = (0..runtime.element_count()).filter(|element| *element != cx.element());
        let others = others.filter_map(|element| runtime.export(element)?.downcast::<RefCell<Order>>().ok());
        for other in others {
            let size = self.order.borrow().size.max(other.borrow().size);
            other.borrow_mut().size = size;
            self.order = other;
        }
        cx.schedule();
        Ok(())
    }

    fn task(&mut self, cx: &mut Context) -> bool {
        let mut order = self.order.borrow_mut();
        let size = if order.size == 0 { DEFAULT_LIMIT } else { order.size };
        if order.noted.len() < size {
            order.noted.push(self.args.id);
        } else if self.args.stop {
            cx.stop();
        }
        self.count = self.count.wrapping_add(1);
        if self.args.limit == 0 || self.count < self.args.limit {
            cx.schedule();
        }
        true
    }

    fn export(&self) -> Option<Rc<dyn Any>> {
        Some(self.order.clone())
    }
}
