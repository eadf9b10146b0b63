//! Printing, such that a reader who has seen enough (`| head`) is not an error.

use std::io::{self, Write};

/// Writes to standard output.
///
/// # Errors
///
/// Anything but a closed pipe: whoever closed it wants no more.
pub fn print(text: &str) -> io::Result<()> {
    quiet(write_all(&mut io::stdout(), text))
}

/// Writes to standard error.
///
/// # Errors
///
/// Anything but a closed pipe.
pub fn print_error(text: &str) -> io::Result<()> {
    quiet(write_all(&mut io::stderr(), text))
}

fn write_all(to: &mut impl Write, text: &str) -> io::Result<()> {
    to.write_all(text.as_bytes())?;
    to.flush()
}

fn quiet(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_pipe_is_no_error_and_others_are() {
        assert!(quiet(Err(io::ErrorKind::BrokenPipe.into())).is_ok());
        assert!(quiet(Err(io::ErrorKind::StorageFull.into())).is_err());
    }
}
