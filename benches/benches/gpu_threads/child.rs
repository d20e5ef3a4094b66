//! The children: each is a process with one kernel on one number of threads, and
//! answers questions with samples.

use crate::{load::loads, sample::Sample, work::Work};
use benches::{Result, g2::Kernel, mode::Mode};
use cuzk_tune::child::{self, Child};
use std::{cell::RefCell, env, process::Command};
use supraseal_sys::set_gpu_threads;

/// The argument before a child's own argument.
pub(crate) const CHILD: &str = "--child";

/// Runs as a child. The argument is its kernel, its threads, the mode and the load.
pub(crate) fn serve(argument: &str) -> Result<()> {
    let [kernel, threads, mode, load] = argument.split(' ').collect::<Vec<_>>()[..] else {
        return Err("expected kernel, threads, mode and load".into());
    };
    let kernel = Kernel::ALL.into_iter().find(|k| k.name() == kernel);
    let kernel = kernel.ok_or("no such kernel")?;
    let mode = if mode == "measure" {
        Mode::Measure
    } else {
        Mode::Smoke
    };
    let load = loads(mode).get(load.parse::<usize>()?);
    let load = *load.ok_or("no such load")?;
    set_gpu_threads(threads.parse()?)?;
    let work = Work::new(load, kernel, threads.parse()?)?;
    child::serve(|question| Ok(work.answer(question)?.write()))
}

/// A child that is started by the first question. So a list of the arms starts none.
pub(crate) struct LazyChild {
    argument: String,
    child: RefCell<Option<Child>>,
}

impl LazyChild {
    /// Prepares a child for the load at this place in the mode's loads.
    pub(crate) fn new(kernel: Kernel, threads: usize, mode: Mode, load: usize) -> Self {
        let mode = mode.pick("measure", "smoke");
        LazyChild {
            argument: format!("{} {threads} {mode} {load}", kernel.name()),
            child: RefCell::default(),
        }
    }

    /// Asks the child, after starting it if necessary.
    pub(crate) fn ask(&self, question: &str) -> Result<Sample> {
        let mut child = self.child.borrow_mut();
        let child = match child.as_mut() {
            Some(child) => child,
            None => {
                let mut command = Command::new(env::current_exe()?);
                child.insert(Child::start(command.args([CHILD, &self.argument]))?)
            }
        };
        Sample::read(&child.ask(question)?)
    }
}
