//! Short lists without memory of their own.
//!
//! What a draw depends on is gathered anew for each draw, and asking the heap for it would cost as
//! much as the rest.

/// A list that lies in one piece, on the heap only if it is long.
#[derive(Debug)]
pub(super) struct Few<T, const N: usize> {
    few: [T; N],
    count: usize,
    /// All of them, if there are more.
    many: Vec<T>,
}

impl<T: Copy, const N: usize> Few<T, N> {
    /// The items; places that are not needed hold `filler`.
    pub(super) fn new(filler: T, items: impl Iterator<Item = T>) -> Self {
        let mut list = Self { few: [filler; N], count: 0, many: Vec::new() };
        items.for_each(|item| list.push(item));
        list
    }

    fn push(&mut self, item: T) {
        match self.few.get_mut(self.count) {
            Some(place) => *place = item,
            None => {
                if self.many.is_empty() {
                    self.many.extend(self.few);
                }
                self.many.push(item);
            }
        }
        self.count += 1;
    }

    pub(super) fn as_slice(&self) -> &[T] {
        if self.many.is_empty() { &self.few[..self.count] } else { &self.many }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_any_length_come_out_as_they_went_in() {
        for length in [0, 1, 3, 4, 5, 100] {
            let all: Vec<u32> = (0..length).collect();
            assert_eq!(Few::<u32, 4>::new(9, all.iter().copied()).as_slice(), all);
        }
    }
}
