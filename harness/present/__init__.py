"""Tables and progress: what people see of a run. Reads measurements, never measures."""
