//! Values with small numbers for names.
//!
//! The invariant: a number names one value until that is taken out.

/// The values.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    slots: Vec<Option<T>>,
    vacant: Vec<usize>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            vacant: Vec::new(),
        }
    }
}

impl<T> Slots<T> {
    /// Puts a value in, and returns its number.
    pub(crate) fn insert(&mut self, value: T) -> usize {
        let number = self.vacant.pop().unwrap_or(self.slots.len());
        match self.slots.get_mut(number) {
            Some(slot) => *slot = Some(value),
            None => self.slots.push(Some(value)),
        }
        number
    }

    /// Returns the value of a number.
    pub(crate) fn get(&self, number: usize) -> Option<&T> {
        self.slots.get(number)?.as_ref()
    }

    /// Returns the value of a number, to change it.
    pub(crate) fn get_mut(&mut self, number: usize) -> Option<&mut T> {
        self.slots.get_mut(number)?.as_mut()
    }

    /// Takes the value of a number out.
    pub(crate) fn take(&mut self, number: usize) -> Option<T> {
        let value = self.slots.get_mut(number)?.take()?;
        self.vacant.push(number);
        Some(value)
    }
}
