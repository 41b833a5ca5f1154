"""Publishing to the Hugging Face Hub: the command and the template of the model card."""
