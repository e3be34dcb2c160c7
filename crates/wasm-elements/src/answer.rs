//! What a module answers for a packet.

use element::Reason;

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It leaves by this output.
    Output(usize),
    /// It is dropped.
    Drop(Reason),
}

impl Answer {
    /// Reads what `process` returned: the number of an output, -1 to drop the packet, or -2 and below to drop it for one of the
    /// reasons that the module has declared. `None` if there is no such reason.
    pub(crate) fn new(value: i32, reasons: &[Reason]) -> Option<Answer> {
        if let Ok(output) = usize::try_from(value) {
            return Some(Answer::Output(output));
        }
        match value.unsigned_abs() - 1 {
            0 => Some(Answer::Drop(Reason::FUNCTION_DROP)),
            number => reasons.get(number as usize - 1).copied().map(Answer::Drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_an_answer_or_refused() {
        let reasons = [Reason::DENIED, Reason::FULL];
        for (value, answer) in [
            (0, Some(Answer::Output(0))),
            (i32::MAX, Some(Answer::Output(i32::MAX as usize))),
            (-1, Some(Answer::Drop(Reason::FUNCTION_DROP))),
            (-2, Some(Answer::Drop(Reason::DENIED))),
            (-3, Some(Answer::Drop(Reason::FULL))),
            (-4, None),
            (i32::MIN, None),
        ] {
            assert_eq!(Answer::new(value, &reasons), answer, "{value}");
        }
    }
}
