"""What `tidemark.calibrate` is made of.

    op_call          a recorded op as a call that can be made again
    rerun            a whole step, run again in order
    overheads        what PyTorch spends around ops and checkpoints
    resident_memory  keeps the allocator from giving memory back between ops
    device_file      the file it writes
"""
