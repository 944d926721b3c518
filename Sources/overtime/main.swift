print("overtime")
