//! Error codes (OpenFlow 1.0, 5.4.4).

use crate::ErrorCode;

/// The request is not permitted (`OFPBRC_EPERM`), which also stands for what this version has no code for.
const EPERM: ErrorCode = ErrorCode::BRC_EPERM;

/// The code in OpenFlow 1.0.
pub(super) fn of(code: ErrorCode) -> ErrorCode {
    let ErrorCode { error_type, code: number } = code;
    match error_type {
        // Hello, requests and actions begin with the same codes.
        0 => code,
        1 if number <= 8 => code,
        2 if number <= 8 => code,
        // The argument.
        2 => ErrorCode::new(2, 5),
        5 => {
            let number = match code {
                ErrorCode::FMFC_TABLE_FULL => 0,
                ErrorCode::FMFC_OVERLAP => 1,
                ErrorCode::FMFC_EPERM => 2,
                ErrorCode::FMFC_BAD_COMMAND => 4,
                // The entry is not supported.
                _ => 5,
            };
            ErrorCode::new(3, number)
        }
        7 if number <= 1 => ErrorCode::new(4, number),
        9 => ErrorCode::new(5, number),
        _ => EPERM,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_numbers_of_the_version() {
        for (code, expected) in [
            (ErrorCode::HFC_INCOMPATIBLE, (0, 0)),
            (ErrorCode::BRC_BAD_EXPERIMENTER, (1, 3)),
            (ErrorCode::BRC_BUFFER_UNKNOWN, (1, 8)),
            (ErrorCode::BRC_IS_SLAVE, (1, 5)),
            (ErrorCode::BAC_BAD_OUT_PORT, (2, 4)),
            (ErrorCode::BAC_MATCH_INCONSISTENT, (2, 5)),
            (ErrorCode::FMFC_TABLE_FULL, (3, 0)),
            (ErrorCode::FMFC_OVERLAP, (3, 1)),
            (ErrorCode::FMFC_BAD_FLAGS, (3, 5)),
            (ErrorCode::PMFC_BAD_HW_ADDR, (4, 1)),
            (ErrorCode::PMFC_BAD_CONFIG, (1, 5)),
            (ErrorCode::QOFC_BAD_PORT, (5, 0)),
        ] {
            let found = of(code);
            assert_eq!((found.error_type, found.code), expected, "{code}");
        }
    }
}
