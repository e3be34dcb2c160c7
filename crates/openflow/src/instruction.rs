//! Instructions in messages (OpenFlow 1.3.5, 7.2.4).

use flow_table::Instructions;

use crate::ErrorCode;
use crate::action::{read_actions, remembered, write_actions};
use crate::wire::{Reader, Writer};

const GOTO_TABLE: u16 = 1;
const WRITE_METADATA: u16 = 2;
const WRITE_ACTIONS: u16 = 3;
const APPLY_ACTIONS: u16 = 4;
const CLEAR_ACTIONS: u16 = 5;
const METER: u16 = 6;
const EXPERIMENTER: u16 = 0xffff;

/// The types of all instructions.
pub(crate) const TYPES: &[u16] =
    &[GOTO_TABLE, WRITE_METADATA, WRITE_ACTIONS, APPLY_ACTIONS, CLEAR_ACTIONS, METER];

/// Reads instructions up to the end of a message.
pub(crate) fn read_instructions(reader: &mut Reader<'_>) -> Result<Instructions, ErrorCode> {
    let (mut instructions, mut seen) = (Instructions::default(), 0u8);
    let (mut apply_lengths, mut write_lengths) = (Vec::new(), Vec::new());
    while !reader.is_empty() {
        let (kind, length) = (reader.u16()?, usize::from(reader.u16()?));
        if length < 8 || !length.is_multiple_of(8) {
            return Err(ErrorCode::BIC_BAD_LEN);
        }
        let mut body = reader.part(length - 4, ErrorCode::BIC_BAD_LEN)?;
        match kind {
            GOTO_TABLE => {
                instructions.goto = Some(body.u8()?);
                body.skip(3)?;
            }
            WRITE_METADATA => {
                body.skip(4)?;
                let (value, mask) = (body.u64()?, body.u64()?);
                instructions.metadata = Some((value, mask));
            }
            WRITE_ACTIONS | APPLY_ACTIONS => {
                body.skip(4)?;
                let mut part = body.part(body.left(), ErrorCode::BAC_BAD_LEN)?;
                match kind {
                    WRITE_ACTIONS => instructions.write = read_actions(&mut part, &mut write_lengths)?,
                    _ => instructions.apply = read_actions(&mut part, &mut apply_lengths)?,
                }
            }
            CLEAR_ACTIONS => {
                body.skip(4)?;
                instructions.clear = true;
            }
            METER => instructions.meter = Some(body.u32()?),
            EXPERIMENTER => return Err(ErrorCode::BIC_BAD_EXPERIMENTER),
            _ => return Err(ErrorCode::BIC_UNKNOWN_INST),
        }
        body.end()?;
        // An entry has at most one instruction of each type (5.9). Version 1.3 has no code of its own for that.
        let bit = 1 << kind;
        if seen & bit != 0 {
            return Err(ErrorCode::BIC_UNSUP_INST);
        }
        seen |= bit;
    }
    apply_lengths.append(&mut write_lengths);
    instructions.stated_lengths = remembered(apply_lengths);
    Ok(instructions)
}

pub(crate) fn write_instructions(writer: &mut Writer, instructions: &Instructions) {
    let mut lengths = instructions.stated_lengths.iter().copied();
    if let Some(meter) = instructions.meter {
        writer.u16(METER).u16(8).u32(meter);
    }
    if !instructions.apply.is_empty() {
        let start = writer.len();
        writer.u16(APPLY_ACTIONS).u16(0).pad(4);
        write_actions(writer, &instructions.apply, &mut lengths);
        writer.set_length(start + 2, start);
    }
    if instructions.clear {
        writer.u16(CLEAR_ACTIONS).u16(8).pad(4);
    }
    if !instructions.write.is_empty() {
        let start = writer.len();
        writer.u16(WRITE_ACTIONS).u16(0).pad(4);
        write_actions(writer, &instructions.write, &mut lengths);
        writer.set_length(start + 2, start);
    }
    if let Some((value, mask)) = instructions.metadata {
        writer.u16(WRITE_METADATA).u16(24).pad(4).u64(value).u64(mask);
    }
    if let Some(table) = instructions.goto {
        writer.u16(GOTO_TABLE).u16(8).u8(table).pad(3);
    }
}
