//! Values by small numbers.

/// A map from small numbers, which costs no more than an index: packets look things up in it.
#[derive(Clone, Debug)]
pub(super) struct Numbered<T>(Vec<Option<T>>);

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Numbered<T> {
    #[inline(always)]
    pub(super) fn get(&self, number: u16) -> Option<&T> {
        self.0.get(usize::from(number))?.as_ref()
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self, number: u16) -> Option<&mut T> {
        self.0.get_mut(usize::from(number))?.as_mut()
    }

    /// The place of a value.
    pub(super) fn entry(&mut self, number: u16) -> &mut Option<T> {
        let number = usize::from(number);
        if self.0.len() <= number {
            self.0.resize_with(number + 1, || None);
        }
        &mut self.0[number]
    }

    pub(super) fn remove(&mut self, number: u16) -> Option<T> {
        self.0.get_mut(usize::from(number))?.take()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// All values, by number.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u16, &T)> {
        let values = self.0.iter().enumerate();
        values.filter_map(|(number, value)| Some((u16::try_from(number).ok()?, value.as_ref()?)))
    }

    /// All values, in the order of their numbers.
    pub(super) fn into_values(self) -> impl Iterator<Item = T> {
        self.0.into_iter().flatten()
    }
}
