"""What `tidemark.capture` is made of.

    op_facts    what an op's schema says: aliases, mutations, randomness
    sources     which line of the user's program an op comes from
    recorder    turns what happens into the rows and events of a Step
    modes       the dispatch mode and the saved-tensor hooks that tell the recorder
    watch       the hooks on modules, optimizers and autograd functions that tell the recorder
    fakes       fake tensors for a model's state and inputs, and the cures for where they differ from real ones
    shadows     values of small tensors that are known although the tensors are fake
    state       putting everything back as it was
    workspace   measuring what kernels allocate out of everybody's sight

PyTorch is imported by these files, and these files only by functions that need it.
"""
