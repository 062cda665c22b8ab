"""Rules in one structure that changes in place, for indexes that insert and delete by themselves."""
