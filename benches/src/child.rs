//! A second process, for what a process can do only once: the number of
//! gpu_threads is decided for good by the first use.
//!
//! The child is the same executable. It answers one line with one line, so
//! that the parent can keep several and ask them in turns.

use crate::Result;
use std::{
    env,
    io::{self, BufRead, BufReader, Write},
    process::{self, ChildStdin, ChildStdout, Command, Stdio},
};

const FLAG: &str = "--child";

/// What the parent passed, if this process is a child.
pub fn argument() -> Option<String> {
    let mut args = env::args().skip(1);
    (args.next().as_deref() == Some(FLAG))
        .then(|| args.next())
        .flatten()
}

/// Answers the parent's lines until there are no more.
///
/// # Errors
/// The first error of `answer`, or of standard input and output.
pub fn serve(mut answer: impl FnMut(&str) -> Result<String>) -> Result<()> {
    for line in io::stdin().lock().lines() {
        let answer = answer(&line?)?;
        println!("{answer}");
    }
    Ok(())
}

/// A running child.
#[derive(Debug)]
pub struct Child {
    process: process::Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Child {
    /// Starts this executable as a child with an argument.
    ///
    /// # Errors
    /// If the process cannot be started.
    pub fn start(argument: &str) -> Result<Self> {
        let mut command = Command::new(env::current_exe()?);
        Self::spawn(command.args([FLAG, argument]))
    }

    fn spawn(command: &mut Command) -> Result<Self> {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let questions = process.stdin.take();
        let answers = process.stdout.take().ok_or("the child has no output")?;
        Ok(Child {
            process,
            questions,
            answers: BufReader::new(answers),
        })
    }

    /// Asks one line and waits for the answer.
    ///
    /// # Errors
    /// If the child has ended; why is on its standard error.
    pub fn ask(&mut self, question: &str) -> Result<String> {
        let questions = self.questions.as_mut().ok_or("the child has no input")?;
        writeln!(questions, "{question}")?;
        questions.flush()?;
        let mut answer = String::new();
        if self.answers.read_line(&mut answer)? == 0 {
            return Err(format!("the child ended before it answered {question:?}").into());
        }
        Ok(answer.trim_end().to_owned())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Without questions the child ends; if it cannot be waited for there
        // is nothing left to do about it.
        self.questions = None;
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_line_by_line() {
        let mut echo = Child::spawn(&mut Command::new("cat")).unwrap();
        assert_eq!(echo.ask("one").unwrap(), "one");
        assert_eq!(echo.ask("two").unwrap(), "two");
    }

    #[test]
    fn a_child_that_ended_is_an_error() {
        let mut gone = Child::spawn(&mut Command::new("true")).unwrap();
        gone.process.wait().unwrap();
        assert!(gone.ask("one").is_err());
    }

    #[test]
    fn a_test_is_no_child() {
        assert_eq!(argument(), None);
    }
}
