//! A second process, for settings that a process can make only once. For example, its
//! first use fixes the number of gpu_threads.
//!
//! A child answers one line with one line, so that a parent can keep several children
//! and ask them in turns. The invariant: a child ends when its parent has ended or has
//! dropped it.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{self, ChildStdin, ChildStdout, Command, Stdio};

/// Answers the parent's lines until there are no more. The first error of `answer`, or
/// of standard input and output, ends it.
///
/// # Errors
/// That error.
pub fn serve<E: From<io::Error>>(
    mut answer: impl FnMut(&str) -> Result<String, E>,
) -> Result<(), E> {
    for line in io::stdin().lock().lines() {
        let answer = answer(&line?)?;
        let mut out = io::stdout().lock();
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

/// A running child process.
#[derive(Debug)]
pub struct Child {
    process: process::Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Child {
    /// Starts `command` as a child, which must [`serve`].
    ///
    /// # Errors
    /// The error of starting the process.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let questions = process.stdin.take();
        let answers = process.stdout.take();
        let answers = answers.ok_or_else(|| io::Error::other("the child has no output"))?;
        Ok(Child {
            process,
            questions,
            answers: BufReader::new(answers),
        })
    }

    /// Sends a line to the child and returns its answer.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] if the child has ended; its reason is on its
    /// standard error.
    pub fn ask(&mut self, question: &str) -> io::Result<String> {
        let questions = self.questions.as_mut();
        let questions = questions.ok_or_else(|| io::Error::other("the child has no input"))?;
        writeln!(questions, "{question}")?;
        questions.flush()?;
        let mut answer = String::new();
        if self.answers.read_line(&mut answer)? == 0 {
            let problem = format!("the child ended before it answered {question:?}");
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, problem));
        }
        Ok(answer.trim_end().to_owned())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Without an input the child ends. An error of waiting for it has no remedy.
        self.questions = None;
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuzk_bounded::BoundedChild;

    #[test]
    fn answers_line_by_line() {
        let mut echo = Child::start(&mut Command::new("cat")).unwrap();
        assert_eq!(echo.ask("one").unwrap(), "one");
        assert_eq!(echo.ask("two").unwrap(), "two");
    }

    #[test]
    fn a_child_that_ended_is_an_error() {
        let mut gone = Child::start(&mut Command::new("true")).unwrap();
        gone.process.wait_bounded().unwrap();
        assert!(gone.ask("one").is_err());
    }
}
